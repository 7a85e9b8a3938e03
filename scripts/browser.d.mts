export function ensureBrowser(): string;
