export { type ClientOptions, createClient, type KnownLimit, type PacedFetch, type PacedInit } from './client.ts'
