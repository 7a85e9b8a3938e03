import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { installedPeer, optionalPeer } from '../../../src/core/optional-peer.js';

const absent = 'a-package-nobody-has-published-yet';

/** As Jest's: an error of another realm. */
const foreignError = (code: string, message: string): unknown =>
  Object.assign(runInNewContext('new Error()') as Error, { code, message });

describe('optionalPeer', () => {
  it('returns the module', async () => {
    const path = await optionalPeer('node:path', 'x()', () => import('node:path'));
    expect(path.sep).toBe('/');
  });

  it('names the package and the command that installs it', async () => {
    // Built at run time, so that no bundler resolves it; the error is Node's own.
    const load = (): Promise<unknown> =>
      Promise.resolve(process.getBuiltinModule('module').createRequire(import.meta.url)(absent));
    await expect(optionalPeer(absent, 'thatSink()', async () => load())).rejects.toMatchObject({
      code: 'PERF_ERR_MISSING_PEER',
      message: `PERF_ERR_MISSING_PEER: thatSink() needs the package \`${absent}\`, which is not installed. Run: npm install ${absent}`,
    });
  });

  it('names them in a realm of a test runner', async () => {
    const error = foreignError('MODULE_NOT_FOUND', "Cannot find module 'prom-client' from 'x.js'");
    await expect(optionalPeer('prom-client', 'x()', () => Promise.reject(error))).rejects.toMatchObject({
      message:
        'PERF_ERR_MISSING_PEER: x() needs the package `prom-client`, which is not installed. Run: npm install prom-client',
    });
    await expect(installedPeer('prom-client', () => Promise.reject(error))).resolves.toBeNull();
  });

  it('does not blame the package when one of its own dependencies is missing', async () => {
    const error = Object.assign(
      new Error(`Cannot find package 'deep' imported from /x/node_modules/prom-client/index.js`),
      {
        code: 'ERR_MODULE_NOT_FOUND',
      },
    );
    await expect(optionalPeer('prom-client', 'x()', () => Promise.reject(error))).rejects.toBe(error);
  });

  it('passes on what the package throws as it loads', async () => {
    const error = new Error('native binary for this platform not found');
    await expect(optionalPeer('prom-client', 'x()', () => Promise.reject(error))).rejects.toBe(error);
  });
});
