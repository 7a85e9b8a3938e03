import type { KernelFile } from '../kernel/kernel-file.js';
import { numberAfter, seconds } from '../kernel/kernel-text.js';

/**
 * Stall time of a pressure file (Documentation/accounting/psi.rst), seconds: `some` task waited, or all (`full`) did.
 * The running total is read, not `avg10`, so that a rate is of the reader's own window. Null when the kernel has no PSI.
 */
export function stallSeconds(file: KernelFile | null, of: 'some' | 'full'): number | null {
  const text = file?.read() ?? null;
  const line = text === null ? -1 : text.indexOf(`${of} `);
  return text === null || line < 0 ? null : seconds(numberAfter(text, 'total=', line), 1e6);
}
