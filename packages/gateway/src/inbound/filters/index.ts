import { apiKey } from './api-key.ts'
import type { Filter } from './filter.ts'
import { hmacSignature } from './hmac-signature.ts'

/** The filters that come with the gateway. */
export const filters: readonly Filter[] = [apiKey, hmacSignature]
