/** Frames of the engine, and of this library between the application's calls. */
const SAYS_LITTLE = / \((?:native|node:[^()]*|[^()]*[\\/]nestjs-perf[\\/]dist[\\/][^()]*)\)$/;

/** The call that says most of a block without a line of the application: in a dependency's file, else the engine's own. */
export const innermostCall = (stack: readonly string[]): string | null =>
  stack.find((call) => !SAYS_LITTLE.test(call)) ?? stack[0] ?? null;
