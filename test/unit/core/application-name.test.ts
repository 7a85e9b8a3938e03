import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { applicationFolder, applicationName } from '../../../src/core/application-package.js';

describe("an application's name", () => {
  let root: string;
  const argv = [...process.argv];
  const write = (path: string, content: object): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), JSON.stringify(content));
  };
  const startWith = (path: string): void => {
    process.argv[1] = join(root, path);
  };
  beforeEach(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), 'perf-name-')));
    write('shop/package.json', { name: '@acme/shop' });
    vi.spyOn(process, 'cwd').mockReturnValue(join(root, 'shop'));
    vi.stubEnv('pm_exec_path', undefined);
  });
  afterEach(() => {
    process.argv = [...argv];
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    rmSync(root, { recursive: true });
  });

  it.each([
    ['shop/dist/main.js', '@acme/shop'],
    ['shop/dist/worker.js', '@acme/shop'],
    ['shop/main.js', '@acme/shop'],
    ['shop/dist/apps.js', '@acme/shop'],
    ['shop/dist/apps/main.js', '@acme/shop'],
    ['shop/dist/my-apps/api/main.js', '@acme/shop'],
    ['shop/node_modules/vitest/apps/run/cli.js', '@acme/shop'],
    ['shop/dist/apps/api/main.js', '@acme/shop-api'],
    ['shop/dist/apps/api/main', '@acme/shop-api'],
    ['shop/dist/apps/api/src/main.js', '@acme/shop-api'],
    ['shop/dist/apps/admin/main.js', '@acme/shop-admin'],
    ['shop/apps/api/src/main.ts', '@acme/shop-api'],
    ['shop/apps/api/worker.mjs', '@acme/shop-api'],
  ])('of %s is %s', (started, name) => {
    startWith(started);
    expect(applicationName()).toBe(name);
  });

  it('is none, and no error, where the working directory was deleted and a dependency was started', () => {
    startWith('shop/node_modules/vitest/run/cli.js');
    vi.mocked(process.cwd).mockImplementation(() => {
      throw Object.assign(new Error('ENOENT: no such file or directory, uv_cwd'), { code: 'ENOENT' });
    });
    expect([applicationName(), applicationFolder()]).toEqual([null, '/']);
    startWith('elsewhere/main.js');
    expect(applicationName()).toBe(null);
    startWith('shop/dist/main.js');
    expect(applicationName()).toBe('@acme/shop');
  });

  it('is that of a package of its own below `apps/`, wherever its package stands', () => {
    write('shop/apps/api/package.json', { name: 'api' });
    write('apps/other/package.json', { name: 'other' });
    for (const [started, name] of [
      ['shop/apps/api/dist/main.js', 'api'],
      ['shop/apps/api/src/main.ts', 'api'],
      ['apps/other/dist/main.js', 'other'],
    ] as const) {
      startWith(started);
      expect(applicationName()).toBe(name);
    }
  });

  it("is that of the file that PM2 starts, whose own is in a dependency's folder", () => {
    vi.stubEnv('pm_exec_path', join(root, 'shop/dist/apps/admin/main.js'));
    startWith('usr/lib/node_modules/pm2/lib/ProcessContainerFork.js');
    expect(applicationName()).toBe('@acme/shop-admin');
    expect(applicationFolder()).toBe(join(root, 'shop/dist/apps/admin'));
  });

  it('is that of the started file where PM2 has started what starts it', () => {
    vi.stubEnv('pm_exec_path', '/usr/bin/npm');
    startWith('shop/dist/apps/api/main.js');
    expect(applicationName()).toBe('@acme/shop-api');
  });

  it("is the working directory's package where the started file is in none", () => {
    startWith('elsewhere/apps/api/main.js');
    expect(applicationName()).toBe('@acme/shop');
  });
});
