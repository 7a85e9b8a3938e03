import { BadRequestException, HttpException, Module } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { PerfError } from '../../../src/index.js';
import { receiveError, sendError } from '../../../src/offload/sent-error.js';
import { findMovable } from '../../../src/offload/transferables.js';
import { functionIn, loadExports, moduleIn } from '../../../src/offload/load-file.js';

describe('what is moved', () => {
  it('is each buffer that is there as a whole, once', () => {
    const whole = new Uint8Array(10);
    const plain = new ArrayBuffer(3);
    const part = new Uint8Array(new ArrayBuffer(10), 2, 4);
    const pooled = Buffer.from('pooled');
    const shared = new Uint8Array(new SharedArrayBuffer(4));
    const found = findMovable([{ whole, again: whole.buffer }, [plain], part, pooled, shared, new ArrayBuffer(0)]);
    expect(new Set(found)).toEqual(new Set([whole.buffer, plain]));
    expect(found).toHaveLength(2);
  });

  it('is a value, or a field or an element of one: deeper ones are copied', () => {
    const bytes = new Uint8Array(1);
    expect(findMovable([bytes])).toEqual([bytes.buffer]);
    expect(findMovable([{ bytes }])).toEqual([bytes.buffer]);
    expect(findMovable([{ file: { bytes } }, null, 'text'])).toEqual([]);
  });
});

describe('an error on its way', () => {
  const sent = (thrown: unknown): Error => receiveError(structuredClone(sendError(thrown)));

  it('keeps name, message, stack, code, and a status that its class tells', () => {
    class Unprocessable extends Error {
      override readonly name = 'Unprocessable';
      readonly code = 'E_NO';
      get status(): number {
        return 422;
      }
    }
    const error = new Unprocessable('no');
    const { name, message, stack } = error;
    expect(sent(error)).toMatchObject({ name, message, stack, code: 'E_NO', status: 422 });
  });

  it('is an `HttpException` with its response, or a `PerfError`', () => {
    const there = sent(new BadRequestException({ fields: ['name'] })) as HttpException;
    expect(there).toBeInstanceOf(HttpException);
    expect([there.name, there.getStatus(), there.getResponse()]).toEqual([
      'BadRequestException',
      400,
      { fields: ['name'] },
    ]);
    const unsent = new BadRequestException({ at: 1, save: () => {} });
    expect((sent(unsent) as HttpException).getResponse()).toEqual({ at: 1 });
    const perf = sent(new PerfError('PERF_ERR_OFFLOAD', 'why'));
    expect(perf).toBeInstanceOf(PerfError);
    expect(perf).toMatchObject({ code: 'PERF_ERR_OFFLOAD', message: 'PERF_ERR_OFFLOAD: why' });
  });

  it('is made of any value that was thrown', () => {
    expect(sent('text').message).toBe('Not an error was thrown: text');
    expect(sent(Object.create(null)).message).toBe('Not an error was thrown: an object that cannot be printed');
  });

  it('is another one where it cannot be read, and a response that is no JSON is its message', () => {
    const guarded = Object.defineProperty(new Error('no'), 'code', {
      get: () => {
        throw new Error('no access');
      },
    });
    const symbolic = Object.assign(new Error('no'), { message: Symbol('no') });
    expect(sent(guarded).message).toBe('An error that cannot be read was thrown: no access');
    expect(sent(symbolic).message).toContain('An error that cannot be read was thrown: Cannot convert a Symbol');
    for (const response of [undefined, { seats: 1n }]) {
      const there = sent(new HttpException(response as unknown as object, 409)) as HttpException;
      expect([there.getStatus(), there.getResponse()]).toEqual([409, 'Http Exception']);
    }
  });
});

describe('a file of a worker', () => {
  @Module({ providers: [] })
  class OneModule {}
  @Module({ imports: [OneModule] })
  class OtherModule {}
  const file = new URL('file:///app/a.js');
  const loaded = (namespace: object) => loadExports(file, async () => namespace);

  it.each<[string, object, unknown]>([
    ['default export', { default: OneModule, OtherModule }, OneModule],
    ['only module class', { OneModule, helper: () => {}, SIZE: 5 }, OneModule],
    ['dynamic module', { default: { module: OneModule, providers: [] } }, { module: OneModule, providers: [] }],
    ['CommonJS export', { default: { OneModule }, OneModule }, OneModule],
    ['CommonJS default', { default: { default: OneModule, __esModule: true } }, OneModule],
    ['CommonJS `module.exports =`', { default: OneModule, 'module.exports': OneModule }, OneModule],
  ])('has its module as its %s', async (_what, namespace, module) => {
    expect(moduleIn(await loaded(namespace), file.href)).toEqual(module);
  });

  it('must not have several, or none', async () => {
    const refused = async (namespace: object) => moduleIn(await loaded(namespace), file.href);
    await expect(refused({ OneModule, OtherModule })).rejects.toThrow(
      'file:///app/a.js must export one module class, or one as its default export; it has several.',
    );
    await expect(refused({ size: 5 })).rejects.toThrow('it has none');
  });

  it('exports a function for `Offloader.run()`', async () => {
    const double = (n: number): number => n * 2;
    expect(functionIn(await loaded({ default: double }), file.href)(4)).toBe(8);
    expect(functionIn(await loaded({ default: { default: double } }), file.href)(4)).toBe(8);
    const bare = await loaded({ double });
    expect(() => functionIn(bare, file.href)).toThrow(
      'PERF_ERR_OFFLOAD: The default export of file:///app/a.js must be a function of its input.',
    );
  });
});
