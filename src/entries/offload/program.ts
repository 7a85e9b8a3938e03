/**
 * The file that workers run. In the package scripts/build.mjs has put its place here; the sources have none, since a worker
 * cannot run TypeScript.
 */
export const program = (): URL | null => null;
