import { MAX_TIMER_MS } from './clock.js';
import { number, optional, string, type NumberRule, type Option } from './option.js';

// Options that several features and entries take: one check and one message each.

type Range = Pick<NumberRule, 'default' | 'min' | 'max'>;

export const duration = (range: Range = {}): Option<number> => number({ ...range, unit: 'a number of milliseconds' });

/** A duration that a timer can wait for. */
export const timeout = (range: Range = {}): Option<number> => duration({ max: MAX_TIMER_MS, ...range });

export const bytes = (range: Range = {}): Option<number> =>
  number({ ...range, unit: 'a whole number of bytes', integer: true });

/** The longest body of a request that is kept; 0: none. */
export const bodyBytes = bytes({ default: 0, min: 0, max: 1_000_000 });

/** 0 takes any free port. */
export const port: Option<number | null> = optional(number({ unit: 'a port', min: 0, max: 65_535, integer: true }));

const text = (what: string): Option<string> => string({ what, test: (given) => given.trim() !== '' });

/** The path of a folder. */
export const folderPath: Option<string> = text('the path of a folder');

/** The text before every key of a store. */
export const keyPrefix: Option<string | null> = optional(text('a text that is not empty'));

export const headerName: Option<string> = text('the name of a header');
export const parameterName: Option<string> = text('the name of a query parameter');
export const secretName: Option<string> = text('a name');
