import { SetMetadata, type CustomDecorator } from '@nestjs/common';

export const NO_COMPRESSION_METADATA = 'perf:no-compression';

/**
 * Sends the responses of a handler, or of every handler of a controller, without a content coding and keeps none of them
 * (beside `@SharedResponse()` the answer is shared unencoded). For responses that mix a secret (a token, a CSRF value, a
 * signed URL) with text that a request can choose: their length would tell about the secret (BREACH).
 */
export const NoCompression = (): CustomDecorator => SetMetadata(NO_COMPRESSION_METADATA, true);
