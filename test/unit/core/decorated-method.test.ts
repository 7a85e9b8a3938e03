import 'reflect-metadata';
import { SetMetadata } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { decorateMethods, wrapMethod } from '../../../src/request/decorated-method.js';
import { DeferWork, Experiment, NoCompression, SharedResponse } from '../../../src/index.js';

const tagged: MethodDecorator = (_target, _key, descriptor) => {
  Object.assign(descriptor.value as object, { tag: 'mine' });
};

describe('a method that is wrapped', () => {
  class Orders {
    @Experiment('gate')
    @SetMetadata('roles', ['admin'])
    @tagged
    find(id: string, _detail: boolean): string {
      return `${this.constructor.name} ${id}`;
    }
  }

  it('keeps its name, length, metadata and properties, and runs with its instance and arguments', () => {
    const { find } = Orders.prototype;
    expect([find.name, find.length]).toEqual(['find', 2]);
    expect(Reflect.getMetadata('roles', find)).toEqual(['admin']);
    expect(Reflect.get(find, 'tag')).toBe('mine');
    expect(new Orders().find('7', true)).toBe('Orders 7');
  });

  it('is what a decorator above sees, and what Nest calls; one below sees the method beneath', () => {
    const seen: unknown[] = [];
    const see: MethodDecorator = (_target, _key, { value }) => void seen.push(value);
    class Seen {
      @see
      @Experiment('gate')
      @see
      find(): void {}
    }
    expect(seen[1]).toBe(Seen.prototype.find);
    expect(seen[0]).not.toBe(Seen.prototype.find);
  });

  it('has metadata of its own: what is defined on the wrapper changes nothing below', () => {
    const method = Object.assign(() => 1, {});
    const descriptor: PropertyDescriptor = { value: method };
    Reflect.defineMetadata('a', 'method', method);
    wrapMethod(descriptor, () => ({ wrapper: () => 2, metadata: [['a', 'wrapper']] }));
    expect([Reflect.getMetadata('a', method), Reflect.getMetadata('a', descriptor.value as object)]).toEqual([
      'method',
      'wrapper',
    ]);
  });

  it('by a decorator on a class that inherits it stays as it is on the class above', () => {
    class Base {
      find(): string {
        return 'found';
      }
    }
    class Derived extends Base {}
    const original = Base.prototype.find;
    const seen: boolean[] = [];
    decorateMethods(Derived, ['find'], (descriptor, isInherited) => {
      seen.push(isInherited);
      wrapMethod(descriptor, () => ({ wrapper: () => 'wrapped' }));
    });
    expect(seen).toEqual([true]);
    expect(Base.prototype.find).toBe(original);
    expect([new Base().find(), new Derived().find()]).toEqual(['found', 'wrapped']);
  });
});

describe.each([
  ['@DeferWork', DeferWork(() => {})],
  ['@Experiment()', Experiment('gate')],
  ['@NoCompression()', NoCompression()],
])('%s', (name, decorator) => {
  class Orders {
    get bound(): () => void {
      return () => {};
    }
  }

  it.each([
    ['an accessor that another decorator has made', Object.getOwnPropertyDescriptor(Orders.prototype, 'bound')],
    ['a property', undefined],
  ])('on %s says where it belongs', (_what, descriptor) => {
    expect(() => decorator(Orders.prototype, 'bound', descriptor as PropertyDescriptor)).toThrow(
      `PERF_ERR_DECORATOR: ${name} on "Orders.bound" needs a method, and this is a property or an accessor. ` +
        'Move it to a method. Where another decorator turns methods into accessors, put that one above.',
    );
  });
});

it('@SharedResponse() on what is no method says where it belongs', () => {
  class Orders {}
  expect(() => SharedResponse({ ttlMs: 1 })(Orders.prototype, 'bound', undefined as never)).toThrow(
    'PERF_ERR_DECORATOR: @SharedResponse() on "Orders.bound" needs a GET handler, got no method. Move it to the handler that serves the data.',
  );
});
