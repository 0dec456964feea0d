import { describe, expect, it, onTestFinished } from 'vitest'
import { below, parseAddress, showAddress } from './address.ts'

describe('an address', () => {
  it('the credentials of an address are removed, so that no message shows them', () => {
    const address = parseAddress('https://us%40er:pa%2Fss@host:1/base/?dc=eu#here', { token: 'sesame' })
    const { url, ...rest } = address
    expect(url.href).toBe('https://host:1/base/?dc=eu')
    const secrets = ['pa/ss', 'sesame']
    expect(rest).toEqual({ username: 'us@er', password: 'pa/ss', token: 'sesame', secrets })
    expect(showAddress(url)).toBe('https://host:1/base')
  })

  it('credentials in options win over those in the address, and those over the environment', () => {
    process.env.DIANA_REMOTE_USERNAME = 'env-user'
    process.env.DIANA_REMOTE_PASSWORD = 'env-password'
    onTestFinished(() => {
      delete process.env.DIANA_REMOTE_USERNAME
      delete process.env.DIANA_REMOTE_PASSWORD
    })
    expect(parseAddress('http://host', {})).toMatchObject({ username: 'env-user', password: 'env-password' })
    expect(parseAddress('http://a:b@host', {})).toMatchObject({ username: 'a', password: 'b' })
    expect(parseAddress('http://a:b@host', { password: 'c' })).toMatchObject({ username: 'a', password: 'c' })
  })

  it('an address may have a password that is not validly percent-encoded', () => {
    expect(parseAddress('http://a:100%@host', {}).password).toBe('100%')
  })

  it('an address keeps its path and query when a path is appended', () => {
    const { url } = parseAddress('http://host/base/?dc=eu', {})
    expect(below(url, '/v1/kv/a%2Fb', { index: '1' }).href).toBe('http://host/base/v1/kv/a%2Fb?dc=eu&index=1')
  })

  it('an invalid address is refused without being shown', () => {
    expect(() => parseAddress('htp://user:hunter2@host', {})).toThrow(
      /^must be a URL that begins with http:\/\/ or https:\/\/, such as http:\/\/127.0.0.1$/,
    )
  })
})
