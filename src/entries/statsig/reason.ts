import { reasonOf } from '../../core/reason.js';

/** The SDK puts the secret key into the URL of its specs, and URLs into its messages. */
export const reasonWithoutKey = (error: unknown): string => reasonOf(error).replaceAll(/secret-[\w-]+/g, 'secret-…');
