import { BadRequestException, HttpException, Module, NotFoundException } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { PerfError } from '../../../src/index.js';
import { errorFrom, sentError } from '../../../src/offload/sent-error.js';
import { classLostIn, movableIn, uncloneableIn } from '../../../src/offload/transferables.js';
import { exportsOf, functionIn, moduleIn } from '../../../src/offload/worker/load.js';

describe('what is moved', () => {
  it('is each buffer that is there as a whole, once', () => {
    const whole = new Uint8Array(10);
    const plain = new ArrayBuffer(3);
    const part = new Uint8Array(new ArrayBuffer(10), 2, 4);
    const pooled = Buffer.from('pooled');
    const shared = new Uint8Array(new SharedArrayBuffer(4));
    const found = movableIn([
      { whole, again: whole.buffer },
      new Map([['plain', plain]]),
      part,
      pooled,
      shared,
      new ArrayBuffer(0),
    ]);
    expect(new Set(found)).toEqual(new Set([whole.buffer, plain]));
    expect(found).toHaveLength(2);
  });

  it('is looked for in circles and large values without end', () => {
    const circle: Record<string, unknown> = { bytes: new Uint8Array(1) };
    circle['self'] = circle;
    expect(movableIn(circle)).toHaveLength(1);
    expect(movableIn(Array.from({ length: 100_000 }, () => ({})))).toEqual([]);
    let read = 0;
    const numbers = new Proxy<number[]>(
      Array.from({ length: 100_000 }, (_, i) => i),
      {
        get: (target, key) => ((read += 1), Reflect.get(target, key) as unknown),
      },
    );
    expect(movableIn(numbers)).toEqual([]);
    expect(read).toBeLessThan(50_000);
  });
});

describe('what cannot be cloned', () => {
  const moved = (): Uint8Array => {
    const bytes = new Uint8Array(8);
    structuredClone(bytes, { transfer: [bytes.buffer] });
    return bytes;
  };
  it.each<[unknown, string | null]>([
    [{ a: [1, { b: () => {} }] }, '.a[1].b (a function)'],
    [new Map([['key', Symbol('s')]]), '.get(key) (a symbol)'],
    [{ later: Promise.resolve() }, '.later (a Promise)'],
    [{ fine: new Date(), text: '' }, null],
    [{ empty: new ArrayBuffer(0) }, null],
    [
      { font: [moved()] },
      '.font[0] (a buffer that was moved before: with `transfer: true` give a copy of what is used again)',
    ],
  ])('is named: %o', (value, place) => {
    expect(uncloneableIn(value)).toBe(place);
  });
});

describe('a class that a copy does not have', () => {
  class User {
    readonly password = '$2b$10$';
  }
  const user = new User();
  it.each<[unknown, string | null]>([
    [user, 'User'],
    [[null, user], 'User'],
    [{ data: [user], total: 1 }, 'User'],
    [[[user], 1], 'User'],
    [[{ user }], 'User'],
    [{ page: { data: [user] } }, 'User'],
    [[{ page: { data: [user] } }], null],
    [[{ id: 1 }, Object.create(null), new Map(), new Date(), Buffer.from('a'), new URL('http://a'), /a/, 'a'], null],
    [Object.create(Object.create(Object.create(null))), 'Object'],
  ])('is named: %o', (value, name) => {
    expect(classLostIn(value)).toBe(name);
  });

  it('is text, whatever static members the class has', () => {
    class Named {
      static name(): void {}
    }
    expect(classLostIn(new Named())).toBe('Object');
  });

  it('is looked for without a call of a getter, in no more than ten items', () => {
    let calls = 0;
    const get = (): User => ((calls += 1), user);
    expect(classLostIn(Object.defineProperty({}, 'user', { get, enumerable: true }))).toBeNull();
    expect(classLostIn(Object.defineProperty([user], 0, { get }))).toBeNull();
    const numbers = Array.from({ length: 1_000 }, (_, i) => i);
    const getOwnPropertyDescriptor = (target: number[], key: string) => (
      (calls += 1),
      Object.getOwnPropertyDescriptor(target, key)
    );
    expect(classLostIn(new Proxy(numbers, { get, getOwnPropertyDescriptor }))).toBeNull();
    expect(calls).toBe(10);
  });
});

describe('an error on its way', () => {
  const travelled = (thrown: unknown): Error => errorFrom(structuredClone(sentError(thrown)));

  it('keeps its cause, the errors that it gathers, and a status that its class tells', () => {
    class Unprocessable extends Error {
      get status(): number {
        return 422;
      }
    }
    const cause = new RangeError('too far');
    expect(travelled(new Error('failed', { cause })).cause).toEqual(cause);
    expect((travelled(new AggregateError([cause], 'all')) as AggregateError).errors).toEqual([cause]);
    expect(travelled(new Unprocessable('no'))).toMatchObject({ status: 422 });
    expect(Object.keys(travelled(new Error('failed', { cause })))).toEqual([]);
  });

  it('keeps all that stands on the errors inside it: its cause, those that it gathers, and others', () => {
    const refused = (port: number): Error =>
      Object.assign(new Error(`connect ${port}`), { code: 'ECONNREFUSED', port, retry: () => {} });
    const cause = new AggregateError([refused(1), 'no error', refused(2), () => {}], 'all failed');
    const previous = new BadRequestException({ fields: ['name'] });
    const there = travelled(Object.assign(new Error('save failed', { cause }), { previous, log: [refused(3)] }));
    expect(there.cause).toBeInstanceOf(AggregateError);
    const at = (port: number) => ({ message: `connect ${port}`, code: 'ECONNREFUSED', port });
    expect((there.cause as AggregateError).errors).toMatchObject([at(1), 'no error', at(2)]);
    expect(there).toMatchObject({ log: [at(3)] });
    const { previous: http } = there as unknown as { previous: BadRequestException };
    expect(http).toBeInstanceOf(BadRequestException);
    expect(http.getResponse()).toEqual({ fields: ['name'] });
  });

  it('stops where an error holds itself, or too many others one in the other', () => {
    const circle: Error = new Error('outer', { cause: new Error('inner') });
    (circle.cause as Error).cause = circle;
    expect(travelled(circle).cause).toMatchObject({ message: 'inner' });
    expect((travelled(circle).cause as Error).cause).toBeUndefined();
    const list: unknown[] = [new Error('inner')];
    list.push(list);
    expect(travelled(Object.assign(new Error('outer'), { list }))).toMatchObject({ message: 'outer' });
    let deep = new Error('0');
    for (let i = 1; i < 1_000; i++) deep = new Error(String(i), { cause: deep });
    let depth = 0;
    for (let at: Error | undefined = travelled(deep); at !== undefined; at = at.cause as Error) depth += 1;
    expect(depth).toBe(5);
    const hostile = Object.defineProperty(new Error('x'), 'name', { get: () => Symbol('s') });
    expect(travelled(new Error('outer', { cause: hostile }))).toMatchObject({
      message: 'outer',
      cause: { message: 'Something was thrown that cannot be read' },
    });
  });

  it("is of the same class again where that is Nest's, Node's or this library's", () => {
    const bad = travelled(new BadRequestException({ fields: ['name'] }));
    expect(bad).toBeInstanceOf(BadRequestException);
    expect((bad as HttpException).getResponse()).toEqual({ fields: ['name'] });
    expect(travelled(new HttpException('teapot', 418))).toMatchObject({ status: 418, message: 'teapot' });
    expect(travelled(new RangeError('far'))).toBeInstanceOf(RangeError);
    const own = travelled(new PerfError('PERF_ERR_OPTION', 'no'));
    expect(own).toBeInstanceOf(PerfError);
    expect(own).toMatchObject({ code: 'PERF_ERR_OPTION', message: 'PERF_ERR_OPTION: no' });
  });

  it('of a class that extends one of these is of the nearest of them, with the name that it had', () => {
    class UserNotFound extends NotFoundException {}
    class OrderTaken extends HttpException {
      override readonly name = 'OrderTaken';
    }
    class TooFar extends RangeError {}
    class StillFurther extends TooFar {}
    const missing = travelled(new UserNotFound('no user'));
    expect(missing).toBeInstanceOf(NotFoundException);
    expect(missing).toMatchObject({ name: 'UserNotFound', status: 404, message: 'no user' });
    const taken = travelled(new OrderTaken('taken', 409));
    expect(Object.getPrototypeOf(taken)).toBe(HttpException.prototype);
    expect(taken.name).toBe('OrderTaken');
    expect(travelled(new StillFurther('far'))).toBeInstanceOf(RangeError);
    expect(travelled(new Error('outer', { cause: new UserNotFound('no user') })).cause).toBeInstanceOf(
      NotFoundException,
    );
  });

  it('keeps its stack and what can be cloned of it, whatever stands there', () => {
    class Odd extends Error {
      override readonly name = 'Odd';
      readonly rows = [1];
      readonly retry = (): void => {};
    }
    const odd = new Odd('odd');
    const there = travelled(odd);
    expect(there).toMatchObject({ name: 'Odd', message: 'odd', rows: [1], stack: odd.stack });
    expect(there).not.toHaveProperty('retry');
    expect(Object.keys(there)).toEqual(['rows']);
    const unreadable = 'Something was thrown that cannot be read';
    expect(travelled(Object.assign(new Error('x'), { name: Symbol('s') })).message).toBe(unreadable);
    expect(travelled(Object.create(null)).message).toBe(unreadable);
    expect(travelled(null).message).toBe('Not an error was thrown: null');
    class Named extends Error {
      static override name(): void {}
    }
    expect(travelled(new Named('x'))).toMatchObject({ message: 'x' });
    // A class of Node's that is no error of Nest's, and the other way round.
    expect(travelled(Object.assign(new Error('x'), { name: 'Module' }))).not.toBeInstanceOf(Module);
  });
});

describe('a file of a worker', () => {
  @Module({ providers: [] })
  class OneModule {}
  @Module({ imports: [OneModule] })
  class OtherModule {}
  const file = new URL('file:///app/a.js');
  const loaded = (namespace: object) => exportsOf(file, async () => namespace);

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
