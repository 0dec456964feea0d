export { LimitedError } from '../answers/limited-error.ts'
export type { RateLimitOptions } from './annotation.ts'
export { RateLimit, type RateLimitDecorator, rateLimitsOf } from './rate-limit.ts'
export { rateLimited } from './wrap-function.ts'
