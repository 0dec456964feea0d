// The one name of the library that a program needs which only paces jobs. Prints "5".
import { RateLimiter } from 'diana-limiter'

console.log(RateLimiter.create(5).rate)
