import { setTimeout as delay } from 'node:timers/promises';
import { PageClient, PageError, printLines, runCommand, type Terminal } from './page-client.js';

const USAGE = `Shows the dashboard of a NestJS application on the terminal, every two seconds, and once in a pipe.

  nestjs-perf top URL [--token TOKEN] [--route NAME] [--once]

  URL      where the page is: http://localhost:3000/perf, or the address from the log, with its token
  --token  from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
  --route  whose last hour is shown, such as 'GET /users/:id' (all routes together)
  --once   looks once, and ends with 1 where there is nothing to see

Other commands: nestjs-perf explain, nestjs-perf profile, nestjs-perf rules; each has --help.
`;
const EVERY_MS = 2_000;
/** The alternate screen without line wraps: at the end the terminal shows again what was on it. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H\u001b[J';

export const top = (args: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand(args, terminal, {
    usage: USAGE,
    options: {
      token: { type: 'string' },
      route: { type: 'string' },
      once: { type: 'boolean', default: false },
    },
    read({ values: { token, route, once }, positionals: [command, address, ...more] }) {
      if (command !== 'top' || address === undefined || more.length > 0) throw new Error('Say `top` and one URL.');
      const path = route === undefined ? '' : `?route=${encodeURIComponent(route)}`;
      // A pipe is watched by nobody.
      return { page: new PageClient(address, token, terminal), path, once: once || terminal.rows() === null };
    },
    async work({ page, path, once }) {
      if (!once) terminal.write(ENTER);
      const show = (text: string): void => {
        const rows = terminal.rows();
        terminal.write(rows === null || once ? `${text}\n` : HOME + text.split('\n', rows - 1).join('\n'));
      };
      try {
        do {
          show(await read(page, path, () => once || terminal.signal.aborted));
          if (!once) await delay(EVERY_MS, undefined, { signal: terminal.signal });
        } while (!once);
      } catch (error) {
        // The user has seen enough.
        if (!terminal.signal.aborted) throw error;
      } finally {
        if (!once) terminal.write(LEAVE);
      }
    },
  });

/** The page as text, or why there is none yet. @throws PageError where there is nothing to see */
async function read(page: PageClient, path: string, isLast: () => boolean): Promise<string> {
  try {
    return printLines(await page.read(path, 'text/plain'));
  } catch (error) {
    if (!(error instanceof PageError) || error.isFinal || isLast()) throw error;
    return `${error.message} Trying again.`;
  }
}
