/** Replaces the texts of the event loop's threads in a folder of compiled sources by literals. */
export function writeThreadPrograms(compiled: string): Promise<void>;
