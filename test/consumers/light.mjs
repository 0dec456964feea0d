// Imports the entries of the packed library that load none of its dependencies. Prints "5".
import { RateLimiter } from 'diana-limiter'
import 'diana-limiter/counting'
import 'diana-limiter/express'
import 'diana-limiter/fastify'
import 'diana-limiter/fetch'
import 'diana-limiter/filter'
import 'diana-limiter/hono'
import 'diana-limiter/http'
import 'diana-limiter/koa'
import 'diana-limiter/opentelemetry'
import 'diana-limiter/prom-client'

console.log(RateLimiter.create(5).rate)
