/** Null where it has been deleted: `process.cwd()` throws then. */
export function workingDirectory(): string | null {
  try {
    return process.cwd();
  } catch {
    return null;
  }
}
