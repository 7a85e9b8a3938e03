import { expect, it } from 'vitest';
import { describe as describeValue } from '../../../src/core/option.js';

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
