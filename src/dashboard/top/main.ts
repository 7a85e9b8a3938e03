#!/usr/bin/env node
// `nestjs-perf top`, `explain`, `profile` and `rules`: built as a file of its own, dist/bin/nestjs-perf.js.
import { explain } from './explain.js';
import type { Terminal } from './page-client.js';
import { profile } from './profile.js';
import { rules } from './rules.js';
import { top } from './top.js';

const stopped = new AbortController();
process.once('SIGINT', () => stopped.abort());
process.once('SIGTERM', () => stopped.abort());
const { stdout, stderr, env } = process;
for (const stream of [stdout, stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader has seen enough, as `head` has.
    if (error.code !== 'EPIPE') throw error;
    stopped.abort();
  });
const terminal: Terminal = {
  write: (text) => void stdout.write(text),
  complain: (text) => void stderr.write(text),
  rows: () => (stdout.isTTY ? stdout.rows : null),
  token: env['PERF_TOKEN'],
  deadlineMs: 10_000,
  signal: stopped.signal,
};
const [command, ...args] = process.argv.slice(2);
const run = new Map(Object.entries({ rules, explain, profile })).get(command ?? '');
const ended = run === undefined ? top(process.argv.slice(2), terminal) : run(args, terminal);
void ended.then((code) => (process.exitCode = code));
