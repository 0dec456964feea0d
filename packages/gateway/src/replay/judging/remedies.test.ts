import { describe, expect, it } from 'vitest'
import { formats } from '../formats/index.ts'
import { remedyFor } from './remedies.ts'

const headers = ['attribute:account or header:x-account-id']

describe('remedies for a log that lacks a field', () => {
  it.each([
    ['diana', headers, 'accessLog: { replay: digest }'],
    ['diana', ['attribute:account'], 'accessLog: { replay: digest }'],
    ['diana with replay', ['attribute:account'], 'shadow'],
    ['apache', ['duration'], '"%D" to LogFormat'],
    ['combined', headers, '"$http_x_account_id" to log_format'],
    ['nginx', ['cookie:id'], '"$cookie_id" to log_format'],
    ['traefik json', headers, 'accessLog.fields.headers.names.x-account-id'],
    ['envoy', headers, '%REQ(X-ACCOUNT-ID)%'],
    ['w3c', ['duration'], 'time-taken'],
    ['w3c', ['host'], 'cs-host'],
    ['json by --fields', headers, '--fields …,header:x-account-id=NAME'],
    ['alb', headers, 'accessLog: { replay: digest }'],
    ['combined', ['body'], 'diana test'],
  ])('a log of the format %s that has no %j gets its own option', (format, missing, remedy) => {
    expect(remedyFor(missing, format)).toContain(remedy)
  })

  it('logs of nginx and Apache alone get the words of nginx and Apache', () => {
    const others = formats.map(({ name }) => name).filter(name => !/combined|common|vhost|forwarded/.test(name))
    expect(others.length).toBeGreaterThan(5)
    for (const format of [...others, 'json by --fields']) {
      for (const missing of [headers, ['duration'], ['host'], ['cookie:a'], ['attribute:plan']]) {
        expect(`${format}: ${remedyFor(missing, format)}`).not.toMatch(/log_format|LogFormat/)
      }
    }
  })
})
