// docs/options.md from the declarations of the build: every interface whose name ends with Options that users can name, every
// option with its type, default and doc comment. `--check` changes nothing and fails when the page is not what the types say,
// or an option has no doc comment. Needs a build in dist/.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const PAGE = 'docs/options.md';

/** Which interfaces, in the order of the page, and how their options are reached. Those that are missing here come at the end. */
const SECTIONS = {
  PerfModuleOptions: [
    'PerfModule.forRoot()',
    'Everything has a default. A wrong or unknown option stops the boot. Beside these `isGlobal` (`true`): whether other modules get the services without an import.',
  ],
  LatencyOptions: ['`latency`', '[Routes and records](routes.md)'],
  EventLoopOptions: ['`eventLoop`', '[Event loop](event-loop.md)'],
  ReplayOptions: ['`eventLoop.replay`', '[Event loop](event-loop.md#options)'],
  ResourcesOptions: ['`resources`', '[Resources](resources.md)'],
  CompressionOptions: ['`compression`', '[Compression](compression.md)'],
  DeferOptions: ['`defer`', '[Deferred work](deferred-work.md)'],
  ExperimentsOptions: ['`experiments`', '[Experiments](experiments.md)'],
  HistoryOptions: ['`history`', '[Did we get slower?](history.md)'],
  DashboardOptions: ['`dashboard`', '[The page](dashboard.md)'],
  SnapshotEndpointOptions: ['`snapshotEndpoint`', '[Routes and records](routes.md)'],
  DeferWorkOptions: ['`@DeferWork(work, options)`', '[Deferred work](deferred-work.md)'],
  EnqueueOptions: ['`deferrer.enqueue(work, data, options)`', 'Beside those of `@DeferWork`, without `when`.'],
  SharedResponseOptions: ['`@SharedResponse(options)`', '[Shared answers](shared-answers.md)'],
  CacheOptions: ['`cache(options)`', '[Cached data](cached-data.md)'],
  CachedOptions: ['`@Cached(options)`', '[Cached data](cached-data.md)'],
  PreloadedOptions: ['`@Preloaded(options)`', '[Cached data](cached-data.md)'],
  RedisCacheOptions: ['`redisCache(options)`', '[Cached data](cached-data.md#all-pods)'],
  LoggerSinkOptions: ['`loggerSink(options)`', '[Routes and records](routes.md#log)'],
  BullmqStoreOptions: ['`bullmqStore(options)`', '[Deferred work](durable-work.md#at-least-once)'],
  OffloadOptions: ['`offload(options)`', '[Off the loop](offload.md)'],
  OffloadMethodOptions: ['`@Offload(options)`', 'Beside those of `offloader.run()`.'],
  OffloadRunOptions: ['`offloader.run(file, input, options)`', '[Off the loop](offload.md#offload-a-method)'],
  PrometheusSinkOptions: ['`prometheusSink(options)`', '[Prometheus](prometheus.md)'],
  OpenTelemetrySinkOptions: ['`openTelemetrySink(options)`', '[OpenTelemetry](opentelemetry.md)'],
  RecordOptions: ['`record(options)`', '[Going live](going-live.md#record)'],
  FileHistoryOptions: ['`fileHistory(options)`', '[Did we get slower?](history.md#keep-it)'],
  RedisHistoryOptions: ['`redisHistory(options)`', '[Did we get slower?](history.md#keep-it)'],
  StatsigSinkOptions: ['`statsigSink(options)`', '[Statsig](statsig.md)'],
  StatsigGatesOptions: ['`statsigGates(client, options)`', '[Experiments](experiments.md#who-decides)'],
  ResilienceOptions: ['`resilience(options)`', '[An upstream is slow](resilience.md)'],
  ResilientUpstreamOptions: ['`resilience({ upstreams })`', '[An upstream is slow](resilience.md#what-it-does)'],
  BreakerOptions: ['`breaker`', '[An upstream is slow](resilience.md#what-it-does)'],
  ResilientRedisOptions: ['`resilientRedis(client, options)`', '[An upstream is slow](resilience.md#redis)'],
  ResilientCallOptions: ['`upstream.call(work, options)`', '[An upstream is slow](resilience.md)'],
  ReportOptions: ['`experiments.report(gate, options)`', '[Experiments](experiments.md)'],
  CompareOptions: ['`compareVariants(units, options)`', '[Experiments](experiments.md#less-noise)'],
};

/** Exported, and no options that anybody gives: what a store is told. */
const NOT_GIVEN = new Set(['DurableJobOptions']);

/** Units by the end of an option's name. */
const UNITS = [
  [/Ms$/, 'milliseconds'],
  [/Bytes$/, 'bytes'],
  [/Cores$/, 'CPU cores'],
];

/** Every interface `…Options` that users can name, from the declarations below `folder`. */
export function optionInterfaces(folder = 'dist') {
  const entries = [
    join(folder, 'index.d.ts'),
    ...readdirSync(join(folder, 'entries')).map((file) => join(folder, 'entries', file)),
  ];
  const texts = entries.filter((file) => file.endsWith('.d.ts')).map((file) => readFileSync(file, 'utf8'));
  const exported = new Set(texts.flatMap((text) => text.match(/\b\w+Options\b/g) ?? []));
  const found = new Map();
  for (const file of readdirSync(folder, { recursive: true })) {
    if (!file.endsWith('.d.ts')) continue;
    for (const [, name, body] of readFileSync(join(folder, file), 'utf8').matchAll(
      /^export interface (\w+Options)(?:<[^>]+>)?(?: extends [^{]+)? \{\n(.*?)^\}/gms,
    )) {
      if (exported.has(name) && !NOT_GIVEN.has(name)) found.set(name, parseMembers(body));
    }
  }
  return found;
}

/** The members of one interface, as TypeScript's emitter writes them: indented by four, ended by `;`. */
function parseMembers(body) {
  const members = [];
  for (const [, comment, name, optional, , written] of body.matchAll(
    /(?:^ {4}\/\*\*((?:(?!\*\/).)*)\*\/\n)?^ {4}(?:readonly )?(\w+)(\?)?(: |(?=\())(.*?);\n(?= {4}[\w/]|$)/gms,
  )) {
    const text = (comment ?? '')
      .split('\n')
      .map((line) => line.trim().replace(/^\* ?/, ''))
      .join(' ')
      .trim();
    const [doc, given] = text.split(/\s*@default\s+/);
    members.push({
      name,
      optional: optional !== undefined,
      type: formatType(written),
      doc,
      given: given ?? null,
    });
  }
  return members;
}

/** `(this: void, request: R): T` of a method as the type of a function. */
const formatType = (written) =>
  written.replaceAll(/\s+/g, ' ').replace(/^\((?:this: void, )?(.*)\): (.*)$/, '($1) => $2');

function formatRow({ name, optional, type, doc, given }) {
  const unit = UNITS.find(([ending]) => ending.test(name))?.[1] ?? '';
  const shown = optional ? formatDefault(given) : '**required**';
  return `| ${[`\`${name}\``, `\`${cell(type)}\``, unit, shown, linked(cell(doc))].join(' | ')} |`;
}

/** A literal as code, words as they are. */
function formatDefault(given) {
  if (given === null) return 'none';
  return /^(?:true|false|-?[\d_.]+|'.*'|\[.*\]|\{.*\})$/.test(given) ? `\`${cell(given)}\`` : cell(given);
}

const cell = (text) => text.replaceAll('|', '\\|');
const linked = (text) => text.replaceAll(/\{@link (\w+)\}/g, '`$1`');

export function renderPage(interfaces) {
  const names = [
    ...Object.keys(SECTIONS),
    ...[...interfaces.keys()].filter((name) => !(name in SECTIONS)).toSorted((a, b) => (a < b ? -1 : 1)),
  ];
  const sections = names
    .filter((name) => interfaces.has(name))
    .map((name) => {
      const [title, guide] = SECTIONS[name] ?? [`\`${name}\``, ''];
      const head = '| option | type | unit | default | |\n|---|---|---|---|---|';
      return `## ${title}\n\n${guide === '' ? '' : `${guide}\n\n`}${head}\n${interfaces.get(name).map(formatRow).join('\n')}\n`;
    });
  return [
    '# Every option',
    '',
    'Which options are there, in which unit, and what is the default? Written by `node scripts/options-page.mjs` from the types.',
    '',
    ...sections,
  ].join('\n');
}

/** Options that say nothing of themselves: `Interface.option`. */
export const undocumented = (interfaces) =>
  [...interfaces].flatMap(([name, members]) =>
    members.filter(({ doc }) => doc === '').map((member) => `${name}.${member.name}`),
  );

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const interfaces = optionInterfaces();
  const silent = undocumented(interfaces);
  if (silent.length > 0) throw new Error(`Without a doc comment: ${silent.join(', ')}`);
  const page = renderPage(interfaces);
  const options = [...interfaces.values()].reduce((sum, members) => sum + members.length, 0);
  if (!process.argv.includes('--check')) writeFileSync(PAGE, page);
  else if (readFileSync(PAGE, 'utf8') !== page) {
    console.error(`${PAGE} is not what the types say. Run: node scripts/options-page.mjs`);
    process.exitCode = 1;
  }
  console.log(`${options} options of ${interfaces.size} interfaces.`);
}
