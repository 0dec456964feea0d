// GraphQL servers whose callers have a budget of fields rather than of calls: Yoga and Apollo on Express, and Yoga on what speaks fetch.
// A query is charged by its size before it runs, and settled by what the answer reports in `extensions.cost`, if it does.
import { createServer } from 'node:http'
import { ApolloServer } from '@apollo/server'
import { expressMiddleware } from '@as-integrations/express5'
import { createLimiter } from 'diana-limiter'
import { diana as onExpress } from 'diana-limiter/express'
import { diana as onFetch } from 'diana-limiter/hono'
import express from 'express'
import { createSchema, createYoga } from 'graphql-yoga'
import { Hono } from 'hono'
import { costOfQuery } from './cost.mjs'

const typeDefs = /* GraphQL */ `
  type Query { books(first: Int): [Book!]! }
  type Book { title: String!, authors(first: Int): [Author!]! }
  type Author { name: String! }
`

const some = (count, make) => Array.from({ length: count ?? 2 }, (_, at) => make(at))
const resolvers = {
  Query: { books: (_root, { first }) => some(first, at => ({ title: `Book ${at}` })) },
  Book: { authors: (_book, { first }) => some(first, at => ({ name: `Author ${at}` })) },
}

export const rules = [
  {
    id: 'fields',
    by: 'ip',
    limit: '1000/m',
    // the cost comes from the filter below; an answer may correct it
    cost: { settle: 'json:extensions.cost', hold: '1m', unit: 'fields' },
    answer: { status: 429 },
  },
]

export async function yogaOnExpress() {
  const limiter = await createLimiter({ rules })
  const yoga = createYoga({ schema: createSchema({ typeDefs, resolvers }), logging: false })
  const app = express()
  // parsed before the limits, so that the query is known; Yoga reads the parsed body
  app.use(express.json({ limit: '100kb' }))
  app.use(onExpress(limiter, { cost: (_call, request) => costOfQuery(request.body) }))
  app.use(yoga.graphqlEndpoint, yoga)
  return await serve(app, limiter)
}

export async function apolloOnExpress() {
  const limiter = await createLimiter({ rules })
  const apollo = new ApolloServer({ typeDefs, resolvers })
  await apollo.start()
  const app = express()
  app.use(express.json({ limit: '100kb' }))
  app.use(onExpress(limiter, { cost: (_call, request) => costOfQuery(request.body) }))
  app.use('/graphql', expressMiddleware(apollo))
  const server = await serve(app, limiter)
  return { ...server, close: () => Promise.all([apollo.stop(), server.close()]) }
}

/** For servers that speak fetch: the body is read from a copy of the request. */
export async function yogaOnFetch() {
  const limiter = await createLimiter({ rules })
  const yoga = createYoga({ schema: createSchema({ typeDefs, resolvers }), logging: false })
  const app = new Hono()
  app.use(async (context, next) => {
    const body = await context.req.raw
      .clone()
      .json()
      .catch(() => undefined)
    context.set('cost', costOfQuery(body))
    await next()
  })
  app.use(onFetch(limiter, { cost: (_call, context) => context.get('cost'), peer: () => '127.0.0.1' }))
  app.all('/graphql', context => yoga.fetch(context.req.raw))
  return { fetch: request => app.fetch(request), limiter, close: () => limiter.close() }
}

async function serve(app, limiter) {
  const server = createServer(app)
  await new Promise(resolve => server.listen(Number(process.env.PORT ?? 4000), '127.0.0.1', resolve))
  const { port } = server.address()
  const close = async () => {
    server.close()
    server.closeAllConnections()
    await limiter.close()
  }
  return { fetch: request => fetch(request), url: `http://127.0.0.1:${port}/graphql`, limiter, close }
}
