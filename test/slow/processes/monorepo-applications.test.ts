import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, inject, it, onTestFinished } from 'vitest';
import type { MonorepoOrder, MonorepoReport } from '../../fixtures/monorepo.process.js';
import { adminOf, ownRedis } from '../../fixtures/redis.js';
import { until } from '../../fixtures/until.js';

const JOBS = 20;
const PATIENT_MS = 60_000;

/** The application `apps/<name>` of a package. */
class Application {
  readonly reports: MonorepoReport[] = [];
  private readonly child: ChildProcess;

  constructor(root: string, name: string, port: number) {
    const folder = join(root, 'apps', name);
    mkdirSync(folder, { recursive: true });
    const main = join(folder, 'main.mjs');
    const source = pathToFileURL(resolve(inject('compiledFixtures'), 'monorepo.process.js')).href;
    writeFileSync(main, `import ${JSON.stringify(source)};\n`);
    this.child = fork(main, [String(port), name], { cwd: root, execArgv: [] });
    this.child.on('message', (report) => this.reports.push(report as MonorepoReport));
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  order(order: MonorepoOrder): void {
    this.child.send(order);
  }

  of(kind: string): unknown[] {
    return this.reports.filter((report) => kind in report).map((report) => Object.values(report)[0] as unknown);
  }

  first(kind: string): Promise<void> {
    return until(`it is ${kind}`, () => this.of(kind).length > 0, PATIENT_MS);
  }
}

it(
  'two applications of one package.json and one Redis share no job, no value and no key',
  { timeout: 180_000 },
  async () => {
    const redis = await ownRedis();
    const admin = adminOf(redis);
    const root = mkdtempSync(join(tmpdir(), 'perf-monorepo-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    writeFileSync(join(root, 'package.json'), JSON.stringify({ name: '@acme/shop' }));
    const applications = {
      api: new Application(root, 'api', redis.port),
      admin: new Application(root, 'admin', redis.port),
    };
    const both = Object.values(applications);
    for (const application of both) await application.first('ready');

    // Both workers take what comes, for as long as jobs come.
    for (const application of both) application.order({ enqueue: JOBS });
    await until('all jobs to run', () => both.flatMap((each) => each.of('ran')).length >= 2 * JOBS, PATIENT_MS);
    expect(applications.api.of('ran')).toEqual(Array.from({ length: JOBS }, () => 'api'));
    expect(applications.admin.of('ran')).toEqual(Array.from({ length: JOBS }, () => 'admin'));

    applications.api.order('read');
    await applications.api.first('read');
    await until(
      'its value to be in Redis',
      async () => (await admin.keys('nestjs-perf:*owner*')).length > 0,
      PATIENT_MS,
    );
    applications.admin.order('read');
    await applications.admin.first('read');
    expect([applications.api.of('read'), applications.admin.of('read')]).toEqual([['api'], ['admin']]);

    // The end writes the history.
    for (const application of both) application.order('close');
    for (const application of both) await application.first('closed');
    const owners = ['bull:nestjs-perf--acme-shop', 'nestjs-perf:@acme/shop', 'perf:history:@acme/shop'].flatMap(
      (begin) => [`${begin}-api:`, `${begin}-admin:`],
    );
    const keys = await admin.keys('*');
    for (const begin of owners) expect(keys.filter((key) => key.startsWith(begin))).not.toEqual([]);
    expect(keys.filter((key) => !owners.some((begin) => key.startsWith(begin)))).toEqual([]);
  },
);
