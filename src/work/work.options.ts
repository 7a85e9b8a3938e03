import { boolean, type Option } from '../core/option.js';

const given = boolean({ default: false });

/** Null: only what is decorated is measured. */
export const workOption: Option<{ readonly isGlobal: true } | null> = {
  expected: given.expected,
  read: (value, path) => (given.read(value, path) ? { isGlobal: true } : null),
};
