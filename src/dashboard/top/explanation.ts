import { isWork } from '../../core/work-methods.js';
import { counted } from '../format.js';
import type { BlockRow, DashboardData, Past, RouteDetail } from '../view.js';

/** Rows of five minutes each. */
const PAST_ROWS = 12;
/** Calls of one target in one request that are probably a loop over rows. */
const MANY_CALLS = 3;
const HTTP_METHODS = /^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (\/\S*)$/;

/** `block`, or a part of its line; the one that took longest comes first. Pauses of the process come last: they are no code's. */
export function findBlock({ sections: { blocks } }: DashboardData, subject: string): BlockRow | undefined {
  const longest = blocks.toSorted((a, b) => Number(isPause(a)) - Number(isPause(b)) || b.totalMs - a.totalMs);
  if (subject === 'block') return longest[0];
  return longest.find(({ location }) => location?.includes(subject) === true);
}

export function listKnown({ routes, sections: { blocks } }: DashboardData): string {
  const names = routes.slice(0, 5).map(({ name }) => name);
  const lines = blocks.slice(0, 3).flatMap(({ location }) => location ?? []);
  return [...names, ...lines].join(', ') || 'no routes yet';
}

export function explainRoute(data: DashboardData, { row, ...detail }: RouteDetail, page: URL): string {
  const [mean, p50, p95, p99, max] = row.ms;
  const { name, time, count, errors = 0, blockedMs = 0, handler } = row;
  const upstream = detail.upstream.toSorted((a, b) => b.callsPerRequest - a.callsPerRequest);
  const many = upstream.filter(({ callsPerRequest }) => callsPerRequest >= MANY_CALLS);
  // A block in a resolver is named for its HTTP request, with the resolver's handler.
  const blocks = data.sections.blocks.filter(
    ({ route, handler: of }) => route === name || (of !== null && of === handler),
  );
  const [block] = blocks;
  const noun = chooseNoun(name);
  const split =
    time === undefined
      ? []
      : [
          `A ${noun} takes ${time[0] === null ? 'an unknown time' : ms(time[0])} of the main thread itself, waits ${ms(time[1])} for upstreams, ${ms(time[2])} for a connection and ${ms(time[3])} for the loop.`,
        ];
  return text(
    `# ${withHandler(name, handler ?? null)}`,
    [
      `${since(data)}: ${counted(count, noun)}, ${errors} failed.`,
      `Duration: mean ${ms(mean)}, p50 ${ms(p50)}, p95 ${ms(p95)}, p99 ${ms(p99)}, max ${ms(max)}.`,
      ...split,
    ],
    listed(
      `Calls of one ${noun}:`,
      upstream.map(({ target, callsPerRequest, wallMs }) => {
        const note = callsPerRequest >= MANY_CALLS ? ', an N+1 if one call is made for each row' : '';
        return `${target}: ${callsPerRequest.toFixed(1)} calls, ${ms(wallMs)}${note}`;
      }),
    ),
    listed(`It has blocked the event loop for ${ms(blockedMs)}:`, blocks.map(describeBlock)),
    ...explainMore(data, name, block, page, [
      `\`${proposeCommand(page, name)}\` shows a p95 below ${ms(p95)}`,
      ...(block?.location ? [`the page has no new block at ${block.location}`] : []),
      ...many.flatMap(({ target }) => [`fewer calls of ${target}`, ...proposeTest(name, target)]),
    ]),
  );
}

export function explainBlock(data: DashboardData, block: BlockRow, page: URL): string {
  const { waited, waiters, gcMs, route, location } = block;
  const routes = waiters.length === 0 ? '' : `: ${waiters.slice(0, 5).join(', ')}`;
  return text(
    `# ${describeBlock(block)}`,
    [
      `First at ${when(block.since)}, last at ${when(block.at)}, ${counted(block.count, 'time')}, the longest ${ms(block.maxMs)}, ${ms(block.totalMs)} in all. ${since(data)}.`,
      `Cause: ${block.cause}${gcMs > 0 ? `, ${ms(gcMs)} of it collection of garbage` : ''}. ${counted(waited, 'request')} waited${routes}.`,
    ],
    ...explainMore(
      data,
      route,
      block,
      page,
      isPause(block)
        ? PAUSE_CHECKS
        : [
            `the request above no longer blocks: the page has no new block${location === null ? '' : ` at ${location}`}`,
            'code that computes for long runs in a worker thread (@Offload), in pieces, or on fewer rows',
            ...proposeTest(route, null),
          ],
    ),
  );
}

/** The stack of a block, problems, the last hour, the request to send again, and what to verify. */
function explainMore(
  { sections, detail }: DashboardData,
  name: string | null,
  block: BlockRow | undefined,
  page: URL,
  checks: readonly string[],
): string[][] {
  const { stack = [], curl = null } = block ?? {};
  const problems = name === null ? [] : sections.now.filter((problem) => isNamedIn(problem.text, name));
  return [
    titled('Stack:', stack.slice(0, 8).map(indent)),
    listed(
      'What is wrong now:',
      problems.map((problem) => problem.text),
    ),
    showPast(detail?.past ?? null, name === null ? 'request' : chooseNoun(name)),
    curl === null ? showCurl(name ?? '', page) : titled('Send the request again:', [indent(curl)]),
    listed(VERIFY, checks),
  ];
}

/** Whether a sentence is about a route: `GET /orders` is none of `GET /orders/:id`. */
const isNamedIn = (sentence: string, name: string): boolean =>
  sentence.split(name).some((rest, i) => i > 0 && /^[.,:;)]?(?:\s|$)/.test(rest));

/** Cron jobs, messages and the like are no requests. */
const chooseNoun = (name: string): string => (isWork(name.split(' ', 1)[0]!) ? 'run' : 'request');

/** `GET /users/:id (UsersController.find)`; a resolver's row has the handler as its name. */
const withHandler = (name: string, handler: string | null): string =>
  handler === null || name.endsWith(` ${handler}`) ? name : `${name} (${handler})`;

export function explainProblems({ sections: { now } }: DashboardData, page: URL): string {
  if (now.length === 0) return 'Nothing is wrong now: no verdict is open, and no figure is out of its bounds.';
  const lines = now.flatMap(({ text: sentence, section }) => {
    const [subject] = /\b[A-Z]+ \/\S*(?=[ :,.])|\S+:\d+:\d+/.exec(sentence) ?? [];
    const next = subject === undefined ? [] : [`  ${proposeCommand(page, subject)}`];
    return [`- ${sentence} [${section}]`, ...next];
  });
  return text(
    '# What is wrong now',
    lines,
    listed(VERIFY, ['the sentence is gone from the page, which takes some minutes']),
  );
}

/** For a shell: what is explained may have a quote in its name. */
const proposeCommand = ({ href }: URL, subject: string): string =>
  `npx nestjs-perf explain ${href} '${subject.replaceAll("'", `'\\''`)}'`;

/** Requests, p95 and the same hour last week, where a history is kept. */
function showPast(past: Past | null, noun: string): string[] {
  const rows = (past?.rows ?? []).slice(-PAST_ROWS).map(([at, perSecond, errors, , p95, , , weekP95]) => {
    const week = weekP95 === null ? '' : `, last week ${ms(weekP95)}`;
    const rates = `${(perSecond ?? 0).toFixed(1)} ${noun}s/s, ${(errors ?? 0).toFixed(1)} errors/s`;
    return perSecond ? [`${when(at)}: ${rates}, p95 ${p95 === null ? 'unknown' : ms(p95)}${week}`] : [];
  });
  const releases = past?.releases.map(({ at, release }) => `release ${release} since ${when(at)}`) ?? [];
  return listed('The last hour:', [...rows.flat(), ...releases]);
}

function showCurl(name: string, { origin }: URL): string[] {
  const [, method, path] = HTTP_METHODS.exec(name) ?? [];
  if (path === undefined) return [];
  const isFilledIn = /[:*]/.test(path) ? ', with its parameters filled in' : '';
  return titled(`Send such a request${isFilledIn}:`, [
    indent(`curl -X ${method} '${origin}${path.replaceAll("'", '%27')}'`),
  ]);
}

/** None for work that no request starts: a contract sends a request. */
function proposeTest(name: string | null, target: string | null): string[] {
  const [, method, path] = HTTP_METHODS.exec(name ?? '') ?? [];
  if (method === undefined || path === undefined) return [];
  const allowed =
    target === null ? '{ blockedMs: { atMost: 50 } }' : `{ upstream: { ${JSON.stringify(target)}: { atMost: 2 } } }`;
  const isFilledIn = /[:*]/.test(path) ? ', with its parameters filled in' : '';
  const call = `expectWork(app, { ${method.toLowerCase()}: ${JSON.stringify(path)} }, ${allowed})`;
  return [`a test keeps it: ${call}${isFilledIn}`];
}

function describeBlock(block: BlockRow): string {
  const { route, handler, proven, location, durationMs, stack } = block;
  if (isPause(block)) return `The operating system kept the process waiting for ${ms(durationMs)}`;
  const who = withHandler(route ?? 'Work outside of requests', handler);
  // Without a line of the application's, a frame of a package is the best there is.
  const where = location !== null ? ` at ${location}` : stack[0] === undefined ? '' : ` in ${stack[0]}`;
  return `${who} ${proven ? 'blocks' : 'may block'} the event loop for ${ms(durationMs)}${where}`;
}

const isPause = ({ cause }: BlockRow): boolean => cause === 'not-scheduled';

const since = ({ process: { startedAt, release, pod } }: DashboardData): string =>
  `Pod ${pod}, release ${release ?? 'unknown'}, since it started at ${when(startedAt)}`;
const PAUSE_CHECKS = [
  'no code is at fault: the CPU limit throttles, the machine is full, or somebody has stopped the process. Raise the limit, or run fewer workers than cores',
  'the page has no new pause of the process',
];
const VERIFY = 'Verify after the change:';
const indent = (line: string): string => `    ${line}`;
const listed = (title: string, lines: readonly string[]): string[] =>
  titled(
    title,
    lines.map((line) => `- ${line}`),
  );
const titled = (title: string, lines: readonly string[]): string[] => (lines.length === 0 ? [] : [title, ...lines]);
const text = (title: string, ...parts: readonly (readonly string[])[]): string =>
  [[title], ...parts.filter(({ length }) => length > 0)].map((part) => part.join('\n')).join('\n\n');
const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const when = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
