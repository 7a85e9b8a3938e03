import { setFlagsFromString } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { functionLike } from '../../../src/http/function-like.js';

setFlagsFromString('--allow-natives-syntax');
// oxlint-disable-next-line typescript/no-implied-eval -- the only way to ask V8
const hasFastProperties = new Function('object', 'return %HasFastProperties(object)') as (object: object) => boolean;

type Method = (this: unknown, ...parameters: unknown[]) => unknown;

const originals: Record<string, Method> = {
  none() {},
  one(_a) {},
  two(_a, _b) {},
  three(_a, _b, _c) {},
  five(_a, _b, _c, _d, _e) {},
};

describe('functionLike', () => {
  it.each(Object.entries(originals))('looks like one with %s parameters and passes on everything', (name, original) => {
    const mark = Symbol('mark');
    Object.assign(original, { [mark]: name });
    const like = functionLike(original, function (this: unknown, ...parameters) {
      return [this, ...parameters];
    });
    expect([like.name, like.length, Reflect.get(like, mark)]).toEqual([original.name, original.length, name]);
    const self = {};
    expect(like.call(self, 1, 2, 3, 4, 5, 6)).toEqual([self, 1, 2, 3, 4, 5, 6]);
    expect(like.call(self)).toEqual([self]);
  });

  it('is no table in V8, so that it is called as fast as any other function', () => {
    for (const name of ['none', 'one', 'two', 'three']) {
      const like = functionLike(originals[name]!, originals[name]!);
      for (let i = 0; i < 3; i++) like.call(null);
      expect([name, hasFastProperties(like)]).toEqual([name, true]);
    }
  });
});
