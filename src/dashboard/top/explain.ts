import type { DashboardData } from '../view.js';
import { explainBlock, explainProblems, explainRoute, findBlock, listKnown } from './explanation.js';
import { PageClient, printLines, runCommand, type Terminal } from './page-client.js';

const USAGE = `Explains one thing that is slow, as one text for a person or a coding agent.

  nestjs-perf explain URL SUBJECT [--token TOKEN]

  URL       where the page is: http://localhost:3000/perf
  SUBJECT   a route ('GET /users/:id'), a block (its line, 'reports.ts:48', or 'block'), or 'verdict'
  --token   from the log, the line "Perf dashboard"; else the environment variable PERF_TOKEN
`;

/** Reads the page's data, with one route open; null for none. */
type Load = (route: string | null) => Promise<DashboardData>;

export const explain = (args: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand(args, terminal, {
    usage: USAGE,
    options: { token: { type: 'string' } },
    read({ values: { token }, positionals: [address, ...subject] }) {
      if (address === undefined || subject.length === 0)
        throw new Error('Give the URL of the page, and a route, a block or `verdict`.');
      return { page: new PageClient(address, token, terminal), subject: subject.join(' ').trim() };
    },
    async work({ page, subject }) {
      const load: Load = async (route) => {
        const search = new URLSearchParams({ scope: 'pod', ...(route !== null && { route }) }).toString();
        return JSON.parse(await page.read(`data?${search}`, 'application/json')) as DashboardData;
      };
      terminal.write(`${printLines(await explainSubject(subject, load, page.url))}\n`);
    },
  });

/** @throws where the subject is not there, with what there is */
async function explainSubject(subject: string, load: Load, page: URL): Promise<string> {
  const data = await load(subject);
  if (subject === 'verdict') return explainProblems(data, page);
  if (data.detail !== null) return explainRoute(data, data.detail, page);
  const block = findBlock(data, subject);
  if (block !== undefined) return explainBlock(block.route === null ? data : await load(block.route), block, page);
  throw new Error(`Nothing is known of "${subject}". There are: ${listKnown(data)}, verdict.`);
}
