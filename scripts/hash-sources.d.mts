export function hashSources(folders: readonly string[], files: readonly string[]): string;
