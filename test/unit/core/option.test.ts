import { expect, it } from 'vitest';
import { describe as describeValue, number, object } from '../../../src/core/option.js';

it.each([
  'redis://:password@host:6379',
  'redis://default:S3cr/et#Pw@host:6379',
  'redis://default:two words@host',
  'default:S3cr/et@host',
])('of %s nothing is told', (text) => {
  expect(describeValue(text)).toBe('`"[redacted]"` (string)');
});

it.each(['https://host/path', '@scope/name'])('%s is told', (text) => {
  expect(describeValue(text)).toBe(`\`"${text}"\` (string)`);
});

it('what another package has added to every object is no option; what a class gives is one', () => {
  const options = object({ size: number({ default: 10, unit: 'a number of items' }) });
  class Configured {
    get size(): number {
      return 20;
    }
  }
  Object.assign(Object.prototype, { size: () => 0 });
  try {
    expect([options.read({}, 'x'), options.read(undefined, 'x')]).toEqual([{ size: 10 }, { size: 10 }]);
    expect(options.read(new Configured(), 'x')).toEqual({ size: 20 });
    expect(options.read({ size: 30 }, 'x')).toEqual({ size: 30 });
  } finally {
    Reflect.deleteProperty(Object.prototype, 'size');
  }
});
