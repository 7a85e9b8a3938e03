/** Frames of the engine, and of this library between the application's calls. */
const SAYS_LITTLE = / \((?:native|node:[^()]*|[^()]*[\\/]nestjs-perf[\\/]dist[\\/][^()]*)\)$/;

/** For a stack without application frames: the innermost call in a dependency's file, else the innermost call. */
export const innermostCall = (stack: readonly string[]): string | null =>
  stack.find((call) => !SAYS_LITTLE.test(call)) ?? stack[0] ?? null;
