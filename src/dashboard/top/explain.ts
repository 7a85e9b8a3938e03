import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { DashboardData, RouteRow } from '../view.js';
import {
  explainBlock,
  explainProblems,
  explainRoute,
  findBlock,
  findRoute,
  listKnown,
  type Surroundings,
} from './explanation.js';
import { readExcerpt } from './source-excerpt.js';
import { PageClient, printLines, runCommand, type Terminal } from './page-client.js';

export const EXPLAIN_USAGE = `Explains one thing that is slow, as one text for a person or a coding agent.

  nestjs-perf explain URL SUBJECT [--token TOKEN]

  URL       where the page is: http://localhost:3000/perf
  SUBJECT   a route ('GET /users/:id'), a block (its line, 'reports.ts:48', or 'block'), or 'verdict'
  --token   from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
`;
const HISTORY_LOOKS = 3;
const HISTORY_WAIT_MS = 300;

type Load = (query: { filter: string; route?: string }) => Promise<DashboardData>;

/** Resolves with the exit code. */
export const explain = (args: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand(
    EXPLAIN_USAGE,
    terminal,
    () => readArguments(args, terminal),
    async ({ page, subject }) => {
      const load: Load = async (query) => {
        const search = new URLSearchParams({ scope: 'pod', ...query }).toString();
        return JSON.parse(await page.read(`data?${search}`, 'application/json')) as DashboardData;
      };
      const around = { url: page.url, excerpt: (location: string) => readExcerpt(location, process.cwd()) };
      terminal.write(`${printLines(await explainSubject(subject, load, around))}\n`);
    },
  );

/** Null: help is wanted. @throws for what cannot be */
function readArguments(args: readonly string[], terminal: Terminal) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { token: { type: 'string' }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) return null;
  const [address, ...subject] = positionals;
  if (address === undefined || subject.length === 0)
    throw new Error('Give the URL of the page, and a route, a block or `verdict`.');
  return { page: new PageClient(address, values.token, terminal), subject: subject.join(' ').trim() };
}

/** @throws where the subject is not there, with what there is */
async function explainSubject(subject: string, load: Load, around: Surroundings): Promise<string> {
  const data = await load({ filter: subject });
  if (subject === 'verdict') return explainProblems(data, around, null);
  const block = findRoute(data, subject) === undefined ? findBlock(data, subject) : undefined;
  const name = block === undefined ? subject : block.route;
  const opened = name === null ? null : await openRoute(name, load);
  if (block !== undefined) return explainBlock(opened?.data ?? data, block, around);
  if (opened !== null) return explainRoute(opened.data, opened.route, around);
  if (data.sections.now.some(({ text }) => text.includes(subject))) return explainProblems(data, around, subject);
  throw new Error(`Nothing is known of "${subject}". There are: ${listKnown(data)}, verdict.`);
}

/** The route with its calls and its last hour; null where the process has no request of it. */
async function openRoute(name: string, load: Load): Promise<{ data: DashboardData; route: RouteRow } | null> {
  const route = findRoute(await load({ filter: name }), name);
  if (route === undefined) return null;
  for (let look = 1; ; look++) {
    const data = await load({ filter: name, route: route.id });
    // The server reads a history in the background.
    if (look === HISTORY_LOOKS || (data.detail?.past.rows.length ?? 0) > 0)
      return { data, route: findRoute(data, name) ?? route };
    await delay(HISTORY_WAIT_MS);
  }
}
