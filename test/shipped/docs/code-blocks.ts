import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { globalsOf, RUN_PRELUDE, STAND_INS } from './prelude.js';

/** One ```ts block of a page. */
export interface CodeBlock {
  readonly page: string;
  /** Of its first line of code, from 1. */
  readonly line: number;
  readonly code: string;
  /** What stands behind `ts`: `compile` for a block that is not run, since it needs a package or a server that is not here; `next` for one that the library does not allow yet. */
  readonly flags: readonly string[];
}

/** Inside the package, so that `nestjs-perf` is what `package.json` exports: the build. */
const FOLDER = '.cache/docs-code';
const FENCE = /^```ts\b([^\n]*)\n(.*?)^```$/gms;

/** README and guides, as they are found. */
export function pages(): string[] {
  const guides = readdirSync('docs').filter((file) => file.endsWith('.md'));
  return ['README.md', ...guides.map((file) => `docs/${file}`)];
}

export function blocksOf(page: string, text = readFileSync(page, 'utf8')): CodeBlock[] {
  return [...text.matchAll(FENCE)].map(({ 1: flags, 2: code, index }) => ({
    page,
    line: text.slice(0, index).split('\n').length + 1,
    code: code!,
    flags: flags!.split(' ').filter((flag) => flag !== ''),
  }));
}

/**
 * Compiles the blocks as a strict application would, all at once, against the build; what is wrong comes as `page:line: message`.
 * What they leave out (Nest's decorators, this library's names, the application's own classes) is what `prelude.ts` declares.
 */
export function problemsOf(name: string, blocks: readonly CodeBlock[]): string[] {
  const { folder, pageOf } = write(name, blocks);
  const { stdout, stderr, error } = spawnSync(
    'node_modules/.bin/tsc',
    ['-p', folder, '--pretty', 'false', '--listFiles'],
    { encoding: 'utf8', maxBuffer: 2 ** 26 },
  );
  if (error !== undefined || stderr !== '') throw error ?? new Error(stderr);
  const lines = stdout.split('\n');
  // Against the sources it would say nothing of what is published.
  if (!lines.some((line) => line.endsWith('/dist/index.d.ts')))
    throw new Error('The blocks were not compiled against dist.');
  if (lines.some((line) => line.startsWith(resolve('src')))) throw new Error('The blocks were compiled against src.');
  return lines
    .filter((line) => /error TS\d+/.test(line))
    .map((line) => {
      const [, file, at, message] = /^(?:.*\/)?([\w.-]+\.ts)\((\d+),\d+\): (.*)$/.exec(line) ?? [];
      const page = file === undefined ? undefined : pageOf.get(file);
      return page === undefined ? line : `${page}:${at}: ${message}`;
    });
}

/**
 * Runs blocks that {@link problemsOf} has compiled under this name, in one process, which must end by itself. `AppModule`, where
 * a block exports one, is booted on both adapters, and its GET routes must answer. By block: `ok`, or what it threw.
 */
export function run(name: string, blocks: readonly CodeBlock[]): Map<CodeBlock, string | undefined> {
  const files = blocks.map((block) => fileOf(block).replace(/\.ts$/, '.js'));
  const script = join(FOLDER, name, 'out', 'run.mjs');
  writeFileSync(script, RUN_PRELUDE.replace('BLOCKS', JSON.stringify(files)));
  const { status, stdout, stderr } = spawnSync('node', [script], { encoding: 'utf8', timeout: 170_000 });
  if (status !== 0) throw new Error(`${status === null ? 'It did not end by itself.' : ''}\n${stdout}${stderr}`);
  const said = new Map(stdout.split('\n').map((line) => [line.split(' ', 1)[0]!, line.slice(line.indexOf(' ') + 1)]));
  return new Map(blocks.map((block, i) => [block, said.get(files[i]!)]));
}

const fileOf = ({ page, line }: CodeBlock): string => `${page.replaceAll('/', '_').replace(/\.md$/, '')}_${line}.ts`;

function write(name: string, blocks: readonly CodeBlock[]) {
  const folder = join(FOLDER, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  if (!existsSync('dist/index.d.ts')) throw new Error('There is no build in dist: npm run build');
  writeFileSync(join(folder, 'globals.d.ts'), globalsOf());
  writeFileSync(join(folder, 'stand-ins.d.ts'), STAND_INS);
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  const pageOf = new Map<string, string>();
  for (const block of blocks) {
    pageOf.set(fileOf(block), block.page);
    // As many lines from the top as on its page, and a module whatever it holds.
    writeFileSync(join(folder, fileOf(block)), `${'\n'.repeat(block.line - 1)}${block.code}export {};\n`);
  }
  return { folder, pageOf };
}

/** What Nest's starter sets. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    strict: true,
    isolatedModules: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    esModuleInterop: true,
    skipLibCheck: true,
    types: ['node'],
    rootDir: '.',
    outDir: 'out',
  },
  include: ['*.ts'],
};
