/** Lines of a source text whose comment begins with a word that is no subject. */
export function badOpenings(text: string): [line: number, comment: string][];
