import { printableData } from '../../core/printable.js';
import { PageClient, runCommand, type Terminal } from './page-client.js';

const USAGE = `Writes stacks of the event loop by route as a .cpuprofile, for Chrome's DevTools, VS Code and speedscope.

  nestjs-perf profile URL [--token TOKEN] [--route NAME] [--seconds SECONDS] > slow.cpuprofile

  URL        where the page is: http://localhost:3000/perf
  --token    from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
  --route    one route, such as 'GET /users/:id', or 'background' (all)
  --seconds  samples so long from now on, 1 to 300, 100 times a second (the last 5 to 10 minutes)
`;

export const profile = (args: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand(args, terminal, {
    usage: USAGE,
    options: { token: { type: 'string' }, route: { type: 'string' }, seconds: { type: 'string' } },
    read({ values: { token, route, seconds }, positionals: [address, ...more] }) {
      if (address === undefined || more.length > 0) throw new Error('Give one URL of a page.');
      if (seconds !== undefined && !(Number(seconds) >= 1 && Number(seconds) <= 300))
        throw new Error(`--seconds must be a number from 1 to 300, got ${JSON.stringify(seconds)}.`);
      const query = new URLSearchParams({ ...(route && { route }), ...(seconds && { seconds }) });
      const page = new PageClient(address, token, terminal);
      return { page, path: `profile?${query.toString()}`, workMs: 1_000 * Number(seconds ?? 0) };
    },
    async work({ page, path, workMs }) {
      const answer: unknown = JSON.parse(await page.read(path, 'application/json', workMs));
      terminal.write(`${JSON.stringify(printableData(answer))}\n`);
    },
  });
