import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Logger } from '@nestjs/common';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { top } from '../../src/dashboard/top/top.js';
import { closeApps } from '../fixtures/build-app.js';
import { startDashboard, terminal } from '../fixtures/dashboard.js';
import { until } from '../fixtures/until.js';

afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});

it('`top` shows the page, and says what is wrong with its address or token', async () => {
  const { url, token } = await startDashboard('fastify', {});
  const { said, kept } = terminal();
  expect(await top(['top', `${url}/perf?token=${token}`, '--once'], kept)).toBe(0);
  expect(said.out).toMatch(/^NOW$[\s\S]*^REQUESTS$/m);
  expect(await top(['top', url, '--token', 'wrong', '--once'], kept)).toBe(1);
  expect(said.err).toContain(`${url}/perf/ answers 401. Unauthorized: the token stands in the log`);
  const away = terminal();
  expect(await top(['top', 'http://127.0.0.1:1/perf', '--once'], away.kept)).toBe(1);
  expect(away.said.err).toMatch(/does not answer \(.+\)\.\n$/);
  expect(await top(['top', 'ftp://x'], away.kept)).toBe(2);
  expect(await top(['--help'], away.kept)).toBe(0);
  const piped = terminal();
  expect(await top(['top', url, '--token', token], piped.kept)).toBe(0);
  expect(piped.said.out.split('\nNOW\n')).toHaveLength(2);
  const stopped = new AbortController();
  const again = terminal(stopped.signal);
  const watching = top(['top', url, '--token', token], { ...again.kept, rows: () => 40 });
  await until('two looks', () => again.said.out.split('\nNOW\n').length > 2);
  stopped.abort();
  expect(await watching).toBe(0);
});

it('`top` gives up on a server that hangs, and on an answer without an end', async () => {
  const chunk = 'x'.repeat(2 ** 20);
  let sent = 0;
  const server = createServer((request, response) => {
    if (request.url!.startsWith('/hangs')) return;
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.on('drain', () => void ((sent += 1), response.write(chunk)));
    response.write(chunk);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => (server.closeAllConnections(), void server.close()));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const hanging = terminal(undefined, 300);
  expect(await top(['top', `${url}/hangs`, '--once'], hanging.kept)).toBe(1);
  expect(hanging.said.err).toContain('does not answer (nothing for 0.3 s).');
  const endless = terminal(undefined, 60_000);
  expect(await top(['top', `${url}/endless`, '--once'], endless.kept)).toBe(1);
  expect(endless.said.err).toContain('does not answer (its answer is longer than 16 MiB).');
  expect(sent).toBeLessThan(64);
});

it.each([[['--once']], [[]]])('`top` with %j ends when nobody reads', async (how) => {
  const { url, token } = await startDashboard('fastify', {});
  const child = spawn('node', ['build/src/dashboard/top/main.js', 'top', url, '--token', token, ...how]);
  child.stdout.destroy();
  let complaints = '';
  child.stderr.on('data', (data) => (complaints += String(data)));
  expect([await once(child, 'close'), complaints]).toEqual([[0, null], '']);
});

it('`top` has a screen of its own, on which no line wraps, and complains when it has left that', async () => {
  const { url } = await startDashboard('fastify', {});
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  const screen = { ...terminal().kept, write, complain: write, rows: () => 24 };
  expect(await top(['top', url, '--token', 'wrong'], screen)).toBe(1);
  expect(written.at(-1)).toMatch(/answers 401\. Unauthorized/);
  expect(written.at(-2)).toBe('\u001b[?7h\u001b[?25h\u001b[?1049l');
  expect(written[0]).toBe('\u001b[?1049h\u001b[?25l\u001b[?7l');
});
