/** One that a minifier has made: another build gives it to another class. */
export const isMinified = (name: string): boolean => name.length <= 2;
