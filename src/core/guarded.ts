import { string, value, type Option } from './option.js';
import type { PerfRequest } from './perf-request.js';
import { describeReason } from './reason.js';

export interface RawResponse<Body = string> {
  status: number;
  type: string;
  body: Body;
  /** Beside the content type; they replace what the application has set before. */
  headers?: Readonly<Record<string, string>>;
}

export type Authorize = (request: PerfRequest) => boolean | Promise<boolean>;

export const pathOption = (byDefault: string): Option<string> =>
  string({ default: byDefault, what: 'a path that begins with `/`', test: (path) => path.startsWith('/') });

/** Required; `optional()` makes it optional. */
export const authorizeOption: Option<Authorize> = value(
  'a function of the request that answers with a boolean',
  (given) => typeof given === 'function',
);

const TEXT = 'text/plain; charset=utf-8';

/** Answers 403 where `authorize` refuses, and 500 where it or the answer fails, with the reason to `failed`. Never rejects. */
export function guarded<Body = string>(
  authorize: Authorize | null,
  answer: (request: PerfRequest) => Promise<RawResponse<Body>>,
  failed: (reason: string) => void,
): (request: unknown) => Promise<RawResponse<Body | string>> {
  return async (request) => {
    try {
      if (authorize !== null && !(await authorize(request as PerfRequest))) {
        return { status: 403, type: TEXT, body: 'Forbidden\n' };
      }
      return await answer(request as PerfRequest);
    } catch (error) {
      failed(describeReason(error));
      return { status: 500, type: TEXT, body: 'Internal Server Error\n' };
    }
  };
}
