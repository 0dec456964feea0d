import { begin } from './begin.mjs'

begin(() => import('./start-gateway.mjs'))
