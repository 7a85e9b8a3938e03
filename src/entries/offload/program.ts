/** The file that workers run: scripts/build.mjs puts its place here. The sources have none. */
export const program = (): URL | null => null;
