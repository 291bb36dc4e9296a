class LerobotLocalPolicy:
    def _estimate_inference_delay(self, fps: float = 30.0) -> int:
        return int(self._p95_latency * fps)

    def _predict_with_rtc(self, batch):
        delay = self._estimate_inference_delay()
        return self.policy.predict_action_chunk(batch, inference_delay=delay, prev_chunk_left_over=self._left_over)
