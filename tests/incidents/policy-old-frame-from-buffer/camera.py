def get_image(self):
    ret, frame = self._caps[0].read()
    return frame
