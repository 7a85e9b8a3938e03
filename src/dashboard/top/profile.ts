import { parseArgs } from 'node:util';
import { printableData } from '../../core/printable.js';
import { PageClient, runCommand, type Terminal } from './page-client.js';

export const PROFILE_USAGE = `Writes stacks of the event loop by route as a .cpuprofile, for Chrome's DevTools, VS Code and speedscope.

  nestjs-perf profile URL [--token TOKEN] [--route NAME] [--seconds SECONDS] > slow.cpuprofile

  URL        where the page is: http://localhost:3000/perf
  --token    from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
  --route    one route, such as 'GET /users/:id', or 'background' (all)
  --seconds  samples so long from now on, 1 to 300, 100 times a second (the last 5 to 10 minutes)
`;

/** Resolves with the exit code. */
export const profile = (args: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand(
    PROFILE_USAGE,
    terminal,
    () => readArguments(args, terminal),
    async ({ page, path, workMs }) => {
      const answer: unknown = JSON.parse(await page.read(path, 'application/json', workMs));
      terminal.write(`${JSON.stringify(printableData(answer))}\n`);
    },
  );

/** Null: help is wanted. @throws for what cannot be */
function readArguments(args: readonly string[], terminal: Terminal) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      token: { type: 'string' },
      route: { type: 'string' },
      seconds: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  const [address, ...more] = positionals;
  if (address === undefined || more.length > 0) throw new Error('Give one URL of a page.');
  const { route, seconds } = values;
  if (seconds !== undefined && !(Number(seconds) >= 1 && Number(seconds) <= 300))
    throw new Error(`--seconds must be a number from 1 to 300, got ${JSON.stringify(seconds)}.`);
  const query = new URLSearchParams({
    ...(route !== undefined && { route }),
    ...(seconds !== undefined && { seconds }),
  });
  const page = new PageClient(address, values.token, terminal);
  return { page, path: `profile?${query.toString()}`, workMs: 1_000 * Number(seconds ?? 0) };
}
