import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PageClient, PageError, printLines, runCommand, type Terminal } from './page-client.js';

export const TOP_USAGE = `Shows the dashboard of a NestJS application on the terminal, again and again.

  nestjs-perf top URL [--token TOKEN] [--route NAME] [--interval SECONDS] [--once]

  URL         where the page is: http://localhost:3000/perf, or the address from the log, with its token
  --token     from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
  --route     whose last hour is shown, such as 'GET /users/:id' (all routes together)
  --interval  seconds between two looks (2)
  --once      looks once, and ends with 1 where there is nothing to see

Other commands: nestjs-perf explain, nestjs-perf profile, nestjs-perf rules; each has --help.
`;
/** The alternate screen without line wraps: at the end the terminal shows again what was on it. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H\u001b[J';

interface Look {
  readonly page: PageClient;
  readonly path: string;
  readonly intervalMs: number;
  readonly once: boolean;
}

/** Resolves with the exit code. */
export const top = (args: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand(
    TOP_USAGE,
    terminal,
    () => readArguments(args, terminal),
    async (look) => {
      const isScreen = terminal.rows() !== null && !look.once;
      if (isScreen) terminal.write(ENTER);
      await watch(look, terminal).finally(() => isScreen && terminal.write(LEAVE));
    },
  );

/** Runs until the user has seen enough. @throws PageError where there is nothing to see */
async function watch({ page, path, intervalMs, once }: Look, terminal: Terminal): Promise<void> {
  for (;;) {
    let text: string;
    try {
      text = printLines(await page.read(path, 'text/plain'));
    } catch (error) {
      if (terminal.signal.aborted) return;
      if (!(error instanceof PageError) || error.isFinal || once) throw error;
      text = `${error.message} Trying again.`;
    }
    const rows = terminal.rows();
    if (rows === null || once) terminal.write(`${text}\n`);
    else terminal.write(HOME + text.split('\n', rows - 1).join('\n'));
    if (once) return;
    await delay(intervalMs, undefined, { signal: terminal.signal }).catch(() => {});
    if (terminal.signal.aborted) return;
  }
}

/** Null: help is wanted. @throws for what cannot be */
function readArguments(args: readonly string[], terminal: Terminal): Look | null {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      token: { type: 'string' },
      route: { type: 'string' },
      interval: { type: 'string', default: '2' },
      once: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  const [command, address, ...more] = positionals;
  if (command !== 'top' || address === undefined || more.length > 0) throw new Error('Say `top` and one URL.');
  const seconds = Number(values.interval);
  if (!(seconds >= 0.5 && seconds <= 3_600))
    throw new Error(`--interval must be a number of seconds from 0.5 to 3600, got ${JSON.stringify(values.interval)}.`);
  const path = values.route === undefined ? '' : `?route=${encodeURIComponent(values.route)}`;
  return {
    page: new PageClient(address, values.token, terminal),
    path,
    intervalMs: seconds * 1_000,
    once: values.once,
  };
}
