export function buildPage(target: string): Promise<number>;
export function buildPageInSources(): Promise<void>;
