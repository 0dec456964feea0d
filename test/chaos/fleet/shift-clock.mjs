// Loaded before anything else into a process whose clock is to be wrong by SHIFT_MS.
import { performance } from 'node:perf_hooks'

const shiftMs = Number(process.env.SHIFT_MS)
const { now } = Date
Date.now = () => now() + shiftMs
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + shiftMs })
