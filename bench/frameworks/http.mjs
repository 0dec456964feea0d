import { createServer } from 'node:http'
import { diana } from '../../packages/limiter/dist/filters/http.js'
import { fourRules, oneRule, order } from './limits.mjs'

const answer = (_request, response) => {
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify(order))
}

export const subjects = {
  bare: () => createServer(answer),
  'diana, one rule': async () => createServer(diana(await oneRule(), answer)),
  'diana, four rules': async () => createServer(diana(await fourRules(), answer)),
}
