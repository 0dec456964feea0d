// @RateLimit on a method, as a standard decorator: no framework, no HTTP.
// Run it: npm run build && npx tsc -p examples/decorator && node examples/decorator/dist/main.js
import { LimitedError, RateLimit } from 'diana-limiter/decorators'

class Messenger {
  readonly sent: string[] = []

  // each receiver gets at most two messages a minute
  @RateLimit({ limit: '2/m', key: (to: string) => to })
  send(to: string, text: string): void {
    this.sent.push(`${to}: ${text}`)
  }
}

const messenger = new Messenger()
for (const [to, text] of [
  ['ann', 'hello'],
  ['ann', 'are you there?'],
  ['ann', 'answer me!'],
  ['bob', 'hello'],
] as const) {
  try {
    messenger.send(to, text)
  } catch (error) {
    if (!(error instanceof LimitedError)) throw error
    console.log(`${to} has heard enough: ${error.message}`)
  }
}

export const { sent } = messenger
console.log(sent)
