import { list, number, object, optional, optionError, string, type Option } from '../../core/option.js';
import type { ExpectedWork } from './work-table.js';

const bound = optional(number({ unit: 'a number', min: 0 }));
const allowed = object({ atMost: bound, atLeast: bound });

const byTarget: Option<null> = {
  expected: "an object by target, as in `{ 'redis cache:6379': { atMost: 3 } }`",
  read(given, path) {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      throw optionError(path, byTarget.expected, given);
    for (const [target, one] of Object.entries(given)) allowed.read(one, `${path}['${target}']`);
    return null;
  },
};

const expectedOption = object({
  upstream: optional(byTarget),
  blockedMs: allowed,
  bytes: allowed,
  deferred: list(string({ what: 'the name of deferred work' }), { default: [], what: 'a list of names' }),
  status: optional(number({ unit: 'a status', min: 100, max: 599, integer: true })),
});

/** A key that is misspelt would compare nothing. @throws PERF_ERR_OPTION */
export function checkExpected(expected: ExpectedWork): void {
  expectedOption.read(expected, 'expected');
}
