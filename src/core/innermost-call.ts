const ENGINES_OWN = / \((?:native|node:[^()]*)\)$/;

/** The call that says most of a block without a line of the application: in a dependency's file, else the engine's own. */
export const innermostCall = (stack: readonly string[]): string | null =>
  stack.find((call) => !ENGINES_OWN.test(call)) ?? stack[0] ?? null;
