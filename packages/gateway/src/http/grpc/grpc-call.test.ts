import { expect, test } from 'vitest'
import { grpcTimeoutMs, grpcTypeOf } from './grpc-call.ts'
import { grpcMessage } from './grpc-status.ts'

test.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3000],
  ['40m', 40],
  ['1500u', 2],
  ['1n', 1],
  ['99999999H', 2 ** 31 - 1],
  ['0S', 0],
  ['123456789S', undefined],
  ['1s', undefined],
  ['-1S', undefined],
  ['1.5S', undefined],
  ['S', undefined],
  ['', undefined],
])('grpc-timeout %s is %s ms', (text, ms) => {
  expect(grpcTimeoutMs({ 'content-type': 'application/grpc', 'grpc-timeout': text })).toBe(ms)
})

test('grpc-timeout has no effect on calls that are not gRPC', () => {
  expect(grpcTimeoutMs({ 'content-type': 'application/json', 'grpc-timeout': '1S' })).toBeUndefined()
})

test.each([
  ['application/grpc', 'application/grpc'],
  ['application/grpc+proto', 'application/grpc+proto'],
  ['Application/gRPC; charset=utf-8', 'application/grpc'],
  ['application/grpc-web+proto', 'application/grpc-web+proto'],
  ['application/grpc-web-text', 'application/grpc-web-text'],
  ['application/grpcx', undefined],
  ['text/application/grpc', undefined],
  ['application/json', undefined],
])('the content type %s is gRPC: %s', (type, expected) => {
  expect(grpcTypeOf({ 'content-type': type })).toBe(expected)
})

test('a grpc-message is ASCII, and percent-encoded where it must be', () => {
  expect(grpcMessage('100 % größer\n')).toBe('100 %25 gr%C3%B6%C3%9Fer%0A')
})
