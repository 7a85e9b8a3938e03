import { feature, number, optionError, type Option } from '../core/option.js';

/** The heaviest users of each route. */
export interface UsersOptions {
  /**
   * Counters kept for each five minutes: pairs of a user and a route.
   * @default 512
   */
  top?: number;
  /**
   * Replaces the user's id by a hash: `true` uses a salt of this process, a text is the salt, so that pods agree.
   * @default false: the user's id as `unit` returns it
   */
  redact?: boolean | string;
}

const redact: Option<boolean | string> = {
  expected: '`true`, `false` or a salt: a text that is not empty',
  read(value, path) {
    if (value === undefined) return false;
    if (typeof value === 'boolean' || (typeof value === 'string' && value !== '')) return value;
    throw optionError(path, this.expected, value);
  },
};

export const usersOption = feature({
  top: number({ default: 512, unit: 'a number of counters', integer: true, max: 100_000 }),
  redact,
});
